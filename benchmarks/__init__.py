"""Measurements that hold the project to its bounds; run by hand, on a machine that is idle.

python -m benchmarks.predict         speed of phase one against its bounds
python -m benchmarks.memory          memory of phase one over rows, and beside ``Trainer``
python -m benchmarks.score           speed and memory of phase two against its bounds
python -m benchmarks.score_profile   where the time of phase two goes
bash benchmarks/gpu_check.sh         what needs a GPU

They print ratios within one run and the machine's size; they are not tests.
"""
