"""Row identity and what every step did to every row: layout, records, reading."""
