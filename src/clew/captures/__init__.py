"""Captures of rows at breakpoints, and the postlude jobs that follow a run, from request to file.

The walk of a capture, module by module:

    requests        what a user asks for, looked up in the plan and held to the `policy`: a `CaptureRequest`
    queue           the run's captures and jobs in the state store: a `CaptureRecord` each
    freezing        names the rows at the breakpoint without reading them, and finds the mode that fits the limits
    tickets         freezes the points that a run passes, as it passes them
    worker          takes records from the queue when the run is over
    writing         writes the rows with Spark, stepping down until they fit, and a manifest
    manifests       where captures lie, and the manifest beside their rows
    captured_rows   reads the rows with DuckDB
    statistics      columns in numbers; `differences` compares two captures, `report` draws a page
    reading         who may read a capture, and its JSON
    jobs, job_rows  postlude jobs: tasks of the plan on the rows at a breakpoint, done after the run
    removal         expired and unwanted captures are deleted
"""
