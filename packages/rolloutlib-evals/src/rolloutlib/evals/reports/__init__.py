"""Reports: what became of a run, on a terminal or as one page to read it in.

    report = read_report("runs/gsm8k.jsonl", baseline="runs/gsm8k-before.jsonl")
    print_summary(report)
    write_html(report, "gsm8k.html")

A log of an evaluation and a file of collected trajectories are read alike.
"""

from rolloutlib.evals.reports._page import write_html
from rolloutlib.evals.reports._reading import read_report
from rolloutlib.evals.reports._report import Change, Report
from rolloutlib.evals.reports._terminal import print_samples, print_summary
from rolloutlib.evals.reports._terminal_sample import print_sample

__all__ = [
    "Change",
    "Report",
    "print_sample",
    "print_samples",
    "print_summary",
    "read_report",
    "write_html",
]
