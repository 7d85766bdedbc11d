"""What would training take? The time of a round as a model, fitted from measurements on this machine."""
