"""Frames near the device, their table, and how each fits."""
