package command

import (
	"cmp"
	"fmt"
	"runtime"

	"github.com/semel-go/semel/internal/recording"
)

// Build has the version of the binary, and describes how the binary was built.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	System   string `json:"system"`
}

// Line returns the build on one line.
func (b Build) Line() string {
	return fmt.Sprintf("semel %s %s %s %s", b.Version, b.Revision, b.Go, b.System)
}

// ThisBuild returns the build of this binary.
func ThisBuild() Build {
	b := recording.ThisBuild()
	return Build{Version: b.Version, Revision: cmp.Or(b.Revision, "unknown"), Modified: b.Changed, Go: runtime.Version(),
		System: runtime.GOOS + "/" + runtime.GOARCH}
}
