package lines

// MaxName is the maximum length of a line's name in bytes.
const MaxName = 256
