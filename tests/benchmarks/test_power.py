"""Counters of energy: what they add up to, and what happens where there are none."""

from benchmarks.power import processor_energy


def make_zone(root, name, microjoules, limit=10_000_000):
    zone = root / name
    zone.mkdir()
    (zone / "energy_uj").write_text(f"{microjoules}\n")
    (zone / "max_energy_range_uj").write_text(f"{limit}\n")
    return zone


def test_processors_are_added_up_and_their_parts_are_not_counted_twice(tmp_path):
    first, second = make_zone(tmp_path, "intel-rapl:0", 4_000_000), make_zone(tmp_path, "intel-rapl:1", 9_000_000)
    part = make_zone(tmp_path, "intel-rapl:0:0", 1_000_000)
    energy = processor_energy(tmp_path)
    (first / "energy_uj").write_text("4500000")
    (part / "energy_uj").write_text("1400000")
    (second / "energy_uj").write_text("1000000")  # it began anew: 1 J to its limit, 1 J after it
    assert energy.joules() == 0.5 + 2.0
    (first / "energy_uj").write_text("4750000")
    assert energy.joules() == 0.75 + 2.0


def test_a_machine_without_counters_has_none(tmp_path):
    assert processor_energy(tmp_path) is None
    assert processor_energy(tmp_path / "nothing") is None
    zone = make_zone(tmp_path, "intel-rapl:0", 5)
    (zone / "energy_uj").write_text("not a number")
    assert processor_energy(tmp_path) is None
