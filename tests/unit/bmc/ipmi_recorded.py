"""What ipmitool 1.8.19 prints, with LC_ALL=C and TZ=UTC.

POWER, MC_INFO, SEL_INFO, SEL, CHASSIS, BOOT and the errors were recorded on 2026-11-27 against ipmi_sim of OpenIPMI 2.0.33
on this project's machine. The simulator has no sensors, no FRU and no DCMI: SDR, FRU and DCMI are written by hand in
ipmitool's layout (lib/ipmi_sdr.c, ipmi_fru.c, ipmi_dcmi.c); every value is invented.
"""

POWER = "Chassis Power is on\n"
MC_INFO = """\
Device ID                 : 0
Device Revision           : 3
Firmware Revision         : 9.08
IPMI Version              : 2.0
Manufacturer ID           : 4753
Manufacturer Name         : MontaVista Software, Inc.
Product ID                : 3842 (0x0f02)
Product Name              : Unknown (0xF02)
Device Available          : yes
Provides Device SDRs      : yes
Additional Device Support :
    Sensor Device
    SEL Device
Aux Firmware Rev Info     : 
    0x00
"""
SEL_INFO = """\
SEL Information
Version          : 1.5 (v1.5, v2 compliant)
Entries          : 4
Free Space       : 15936 bytes 
Percent Used     : 41%
Last Add Time    : S+ 00:39:16
Overflow         : false
"""
SEL = """\
   1 |  Pre-Init  |0000002356| Power Supply #0xc9 | Failure detected | Asserted
SDRR successfully erased
   2 | 11/01/26 | 14:00:00 UTC | Power Supply #0xc9 | Failure detected | Deasserted
   b | 11/01/26 | 14:00:05 UTC | Temperature #0x01 | Upper Critical going high | Asserted
   c | 11/01/2026 | 14:00:06 | Memory #0x02 | Correctable ECC | Asserted
   d | 11/01/26 | 14:00:07 UTC | OS Boot #0x03 | C: boot completed | Asserted
"""
CHASSIS = """\
System Power         : on
Power Overload       : false
Power Interlock      : inactive
Main Power Fault     : false
Power Control Fault  : false
Power Restore Policy : always-off
Last Power Event     : 
Chassis Intrusion    : inactive
Front-Panel Lockout  : inactive
Drive Fault          : false
Cooling/Fan Fault    : false
"""
BOOT = """\
Boot parameter version: 1
Boot parameter 5 is valid/unlocked
Boot parameter data: e004000000
 Boot Flags :
   - Boot Flag Valid
   - Options apply to only next boot
   - BIOS EFI boot 
   - Boot Device Selector : Force PXE
   - BIOS verbosity : System Default
"""
SDR = """\
CPU1 Temp        | 01h | ok  |  3.1 | 58 degrees C
Inlet Temp       | 05h | nc  | 64.1 | 41 degrees C
GPU9 Temp        | 19h | ns  | 11.9 | No Reading
FAN1             | 41h | ok  | 29.1 | 9100 RPM
FAN3             | 43h | cr  | 29.3 | 0 RPM
PS1 Status       | c8h | ok  | 10.1 | Presence detected
PS2 Status       | c9h | ok  | 10.2 | Presence detected, Failure detected
PS3 Status       | cah | ok  | 10.3 | 
PS1 Input        | cbh | ok  | 10.1 | 640 Watts
SEL              | 72h | ns  |  6.1 | No Reading
"""
FRU = """\
 Board Mfg             : Maker
 Product Manufacturer  : Maker
 Product Name          : Model 9
 Product Serial        : RW00000007
"""
DCMI = """\

    Instantaneous power reading:                   420 Watts
    Minimum during sampling period:                 12 Watts

"""
NO_SESSION = "Error: Unable to establish IPMI v2 / RMCP+ session\n"
NO_SUITE = f"Error in open session response message : invalid authentication algorithm\n\n{NO_SESSION}"
ANOTHER_SUITE = f"Authentication algorithm 0x01 is not what we requested 0x03\n\n{NO_SESSION}"
"""Of ipmitool 1.8.19 and virtualbmc 3.3.0."""
NO_ANSWER = "Unable to set Chassis Power Control to Down/Off\n"
"""Of ipmitool 1.8.19 and virtualbmc 3.3.0, whose host was busy: the machine was off a moment later."""
NO_SENSORS = "Error obtaining SDR info: Invalid command\nUnable to open SDR for reading\n"
NO_COMMAND = "\n    DCMI request failed because: Invalid command (c1)\n\n"
