package legible

import (
	"fmt"
	"runtime"
)

// Panic tells a panic without what a payload may have put into it.
func Panic(p any) string {
	if e, ok := p.(runtime.Error); ok {
		return e.Error()
	}
	return fmt.Sprintf("a %T", p)
}
