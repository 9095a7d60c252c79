"""Launches: an answer as the command, the config or the task that people run.

`described` says what is launched, `tools` what with (data files), `training` and `serving` fill in a tool's pieces,
`script` makes shell of them, `tasks` and `job` put that on machines of a cloud and into the router's queue, and
`launch` chooses among them.
"""
