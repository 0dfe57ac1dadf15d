"""The frames of a run: kept in batches near the device, what is known of each, and how well each fits."""
