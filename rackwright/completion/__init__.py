"""What a shell offers when Tab is pressed: commands, options, and names of the cluster file on the line.

`commands.py` holds a command as plain data, `line.py` finds what is being typed, `values.py` the names that fit.
The scripts beside them are what a shell loads; each calls `rackwright completion answer`. All of it must be quick and
silent: it loads neither pydantic nor pyinfra, and anything that goes wrong is an empty answer.
"""
