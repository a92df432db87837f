package legible

import (
	"fmt"
	"runtime"
)

// Panic describes a panic value without text that may come from a payload.
func Panic(p any) string {
	if e, ok := p.(runtime.Error); ok {
		return e.Error()
	}
	return fmt.Sprintf("a %T", p)
}
