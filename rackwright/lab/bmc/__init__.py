"""Virtual BMCs of a rack's machines: a Redfish service for each, in a network that the rack alone reaches."""
