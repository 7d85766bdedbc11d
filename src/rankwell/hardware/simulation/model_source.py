"""The C++ that joins a design's ports to `driver.cpp`, for either compiled simulator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rankwell.hardware.ports import DesignPorts, Port

# The simulator's class, clock edges, and how one of its ports is named.
_VERILATOR = """\
#include "Vtop.h"
#include "verilated.h"
double sc_time_stamp() { return 0; }
#define PORT(name) design.name
struct Design : Vtop {
    void settle() { eval(); }
};
"""
_CXXRTL = """\
#include "design.cc"
template <size_t N> auto& bits_of(cxxrtl::value<N>& port) { return port.data; }
template <size_t N> auto& bits_of(cxxrtl::wire<N>& port) { return port.curr.data; }
#define PORT(name) bits_of(design.name)
#define clk p_clk
#define rst p_rst
struct Design : cxxrtl_design::p_top {
    void settle() { step(); }
};
"""
_MODEL = """\
#include <cstdint>
#include <cstring>
constexpr int N_INPUTS = %(n_inputs)d, N_OUTPUTS = %(n_outputs)d;
template <typename T> void put(T& port, const uint8_t* from, size_t bytes) {
    memset((void*)&port, 0, sizeof(port));
    memcpy((void*)&port, from, bytes);
}
template <typename T> void set(T& port, bool value) {
    uint8_t byte = value;
    put(port, &byte, 1);
}
template <typename T> bool get(T& port) {
    uint8_t byte;
    memcpy(&byte, (const void*)&port, 1);
    return byte & 1;
}
struct Model {
    Design design;
    void tick() {
        set(PORT(clk), true);
        design.settle();
        set(PORT(clk), false);
        design.settle();
    }
    void reset() {
        for (int s = 0; s < N_INPUTS; s++) offer(s, false, nullptr);
        for (int s = 0; s < N_OUTPUTS; s++) accept(s, false);
        set(PORT(clk), false);
        set(PORT(rst), true);
        design.settle();
        tick();
        set(PORT(rst), false);
        design.settle();
    }
    void put_setting(int64_t number, const uint8_t* value) {
        switch (number) {%(settings)s
        }
        design.settle();
    }
    void offer(int stream, bool valid, const uint8_t* row) {
        switch (stream) {%(offers)s
        }
    }
    void accept(int stream, bool ready) {
        switch (stream) {%(accepts)s
        }
    }
    bool is_ready(int stream) {
        switch (stream) {%(readies)s
        }
        return false;
    }
    bool is_valid(int stream) {
        switch (stream) {%(valids)s
        }
        return false;
    }
    void take(int stream, uint8_t* row) {
        switch (stream) {%(takes)s
        }
    }
    bool outputs_change() {
        bool before[N_INPUTS + N_OUTPUTS];
        for (int s = 0; s < N_INPUTS; s++) before[s] = is_ready(s);
        for (int s = 0; s < N_OUTPUTS; s++) before[N_INPUTS + s] = is_valid(s);
        design.settle();
        for (int s = 0; s < N_INPUTS; s++) if (before[s] != is_ready(s)) return true;
        for (int s = 0; s < N_OUTPUTS; s++) if (before[N_INPUTS + s] != is_valid(s)) return true;
        return false;
    }
};
"""


def verilator_source(ports: DesignPorts) -> str:
    """The whole driver for a model that Verilator made."""
    return _VERILATOR + _model(ports, lambda port: port.name.replace("__", "___05F")) + _driver()


def cxxrtl_source(ports: DesignPorts) -> str:
    """The whole driver for a model that Yosys's CXXRTL made."""
    return _CXXRTL + _model(ports, lambda port: "p_" + port.name.replace("_", "__")) + _driver()


def _driver() -> str:
    return (Path(__file__).parent / "driver.cpp").read_text()


def _model(ports: DesignPorts, named: Callable[[Port], str]) -> str:
    def cases(texts: list[str]) -> str:
        return "".join(f"\n            case {number}: {text}; break;" for number, text in enumerate(texts))

    def whole(port: Port, value: str) -> str:
        return f"put(PORT({named(port)}), {value}, {-(-port.bits // 8)})"

    return _MODEL % {
        "n_inputs": len(ports.inputs),
        "n_outputs": len(ports.outputs),
        "settings": cases([whole(port, "value") for port in ports.settings]),
        "offers": cases(
            [
                f"set(PORT({named(stream.valid)}), valid); if (valid) {whole(stream.payload, 'row')}"
                for stream in ports.inputs
            ]
        ),
        "accepts": cases([f"set(PORT({named(stream.ready)}), ready)" for stream in ports.outputs]),
        "readies": cases([f"return get(PORT({named(stream.ready)}))" for stream in ports.inputs]),
        "valids": cases([f"return get(PORT({named(stream.valid)}))" for stream in ports.outputs]),
        "takes": cases(
            [
                f"memcpy(row, (const void*)&PORT({named(stream.payload)}), {stream.row_bytes})"
                for stream in ports.outputs
            ]
        ),
    }
