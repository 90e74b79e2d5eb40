"""The probe on the zoo: attempts, kept in a file, and how far its confidence can be trusted."""
