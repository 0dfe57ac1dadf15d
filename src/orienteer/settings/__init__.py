"""One definition of every setting: TOML file, command-line flags and documentation."""
