package store

// MaxLine is the maximum length of a line's name in bytes.
const MaxLine = 256
