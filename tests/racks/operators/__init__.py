"""Several operators on one cluster: who may change it, whose run goes on, and a control node whose disk is full."""
