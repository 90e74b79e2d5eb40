"""How many heads does a task need? Samples, counting, descent, verdict, finding: in this order."""

from headwise.advise.probe.ask import probe
from headwise.advise.probe.evaluate import ProbeEvaluation, probe_eval
from headwise.advise.probe.finding import Finding
from headwise.advise.probe.judged.score import ZooEvaluation
from headwise.advise.probe.samples.readers import read

__all__ = ["Finding", "ProbeEvaluation", "ZooEvaluation", "probe", "probe_eval", "read"]
