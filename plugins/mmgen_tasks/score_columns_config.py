"""A key that the metrics of several tasks share."""

from pydantic import Field

By = Field(
    (),
    description='facts of examples, such as "form" of drawn data: every value of these facts has a column of accuracy',
)
