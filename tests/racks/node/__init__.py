"""What a node has below its applications, on racks of one node or two."""
