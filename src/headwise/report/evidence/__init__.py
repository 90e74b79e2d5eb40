"""What was found, shipped: result tables of whole tiers, and the pages made from them alone."""

from headwise.report.evidence._verbs import (
    add_evidence,
    check_evidence,
    compare_evidence,
    rerun_evidence,
    write_evidence,
)

__all__ = ["add_evidence", "check_evidence", "compare_evidence", "rerun_evidence", "write_evidence"]
