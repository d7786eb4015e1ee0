"""The ordered triage of a subject: model, data, loss and optimizer given as plain factories.

Layer by layer, from the data to the evaluation, cheapest first: direct measurements of the pieces,
then the checks of the catalogue over a short recorded training. It stops at the first layer that
fails, unless told to go on.
"""

from sawbones.triage.engine import Triage, check
from sawbones.triage.grades import Grades, SettingsNotReadable, project_grades
from sawbones.triage.subject import Subject, SubjectNotFound, as_subject, load_subject

__all__ = [
    "Grades",
    "SettingsNotReadable",
    "Subject",
    "SubjectNotFound",
    "Triage",
    "as_subject",
    "check",
    "load_subject",
    "project_grades",
]
