package lines

// MaxName is the maximum length in bytes of the name of a line (the queue of a key or lane).
const MaxName = 256
