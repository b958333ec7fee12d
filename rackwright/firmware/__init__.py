"""Firmware and BIOS settings of nodes through their BMCs: compared with what is declared, updated, read back.

State is read from the BMC and never assumed, so that a run that was interrupted is finished by running it again.
"""
