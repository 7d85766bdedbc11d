// Drives a design by its streams. `Model` and the functions before it are generated from the design's ports.
//
// A cycle: what the design's outputs show since the last edge, and what the driver offers, are judged together, then
// the clock rises. No output may depend on an input of the same cycle; `check` says so.

#include <cstdint>
#include <cstring>
#include <vector>

struct Rows {  // the beats of a stream: beat b is row b modulo period
    uint8_t* data;
    int64_t stride, period, n_beats, done;
};

enum Failure { VALID_FELL = -1, PAYLOAD_CHANGED = -2, DEPENDS_ON_INPUT = -3 };

extern "C" void* create() {
    Model* model = new Model;
    model->reset();
    return model;
}

extern "C" void destroy(void* model) { delete static_cast<Model*>(model); }

extern "C" void reset(void* model) { static_cast<Model*>(model)->reset(); }

extern "C" void put_setting(void* model, int64_t number, const uint8_t* value) {
    static_cast<Model*>(model)->put_setting(number, value);
}

// Runs until every stream is done or `most` cycles have passed; the cycles, or a Failure.
// stalls: in cycle c, bit s of stalls[c modulo n_stalls] holds back stream s (inputs first, then outputs).
extern "C" int64_t run(void* place, Rows* inputs, Rows* outputs, const uint64_t* stalls, int64_t n_stalls, int64_t most,
                       int64_t check) {
    Model& model = *static_cast<Model*>(place);
    int64_t left = 0;
    for (int s = 0; s < N_INPUTS; s++) left += inputs[s].n_beats - inputs[s].done;
    for (int s = 0; s < N_OUTPUTS; s++) left += outputs[s].n_beats - outputs[s].done;
    bool offered[N_INPUTS] = {}, shown[N_OUTPUTS] = {}, accepts[N_OUTPUTS] = {};
    const uint8_t* row[N_INPUTS] = {};
    int64_t place_of[N_INPUTS];
    for (int s = 0; s < N_INPUTS; s++) place_of[s] = inputs[s].n_beats ? inputs[s].done % inputs[s].period : 0;
    std::vector<uint8_t> seen[N_OUTPUTS], now;
    int64_t cycles = 0;
    for (; left > 0 && cycles < most; cycles++) {
        uint64_t held = n_stalls ? stalls[cycles % n_stalls] : 0;
        for (int s = 0; s < N_INPUTS; s++) {
            // Once offered, a beat is offered until it is taken.
            bool offer = inputs[s].done < inputs[s].n_beats && (offered[s] || !(held >> s & 1));
            if (offer && !offered[s]) row[s] = inputs[s].data + place_of[s] * inputs[s].stride;
            offered[s] = offer;
            model.offer(s, offer, row[s]);
        }
        for (int s = 0; s < N_OUTPUTS; s++) {
            accepts[s] = outputs[s].done < outputs[s].n_beats && !(held >> (N_INPUTS + s) & 1);
            model.accept(s, accepts[s]);
        }
        if (check && model.outputs_change()) return DEPENDS_ON_INPUT;
        for (int s = 0; s < N_INPUTS; s++) {
            if (!offered[s] || !model.is_ready(s)) continue;
            offered[s] = false;
            inputs[s].done++;
            left--;
            if (++place_of[s] == inputs[s].period) place_of[s] = 0;
        }
        for (int s = 0; s < N_OUTPUTS; s++) {
            if (!model.is_valid(s)) {
                if (shown[s]) return VALID_FELL;
                continue;
            }
            now.resize(outputs[s].stride);
            model.take(s, now.data());
            if (shown[s] && now != seen[s]) return PAYLOAD_CHANGED;
            shown[s] = !accepts[s];
            seen[s] = now;
            if (!accepts[s]) continue;
            memcpy(outputs[s].data + outputs[s].done++ * outputs[s].stride, now.data(), outputs[s].stride);
            left--;
        }
        model.tick();
    }
    for (int s = 0; s < N_INPUTS; s++) model.offer(s, false, nullptr);
    for (int s = 0; s < N_OUTPUTS; s++) model.accept(s, false);
    return cycles;
}
