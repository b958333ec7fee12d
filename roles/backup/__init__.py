"""backup: encrypted backups of the state that a head cannot be rebuilt without, made on a timer in a declared place.

Parts come from the roles of the head (`rackwright.model.backups`). This role adds the cluster file and the secrets
store as the last apply had them, since a control node is lost as easily as a head. Backups are encrypted to public
keys alone: a stolen head or place reveals none of them. `rackwright restore` puts them back (docs/backup.md).
"""
