package command

import (
	"fmt"
	"runtime"
	"runtime/debug"
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
	b := Build{Version: "(devel)", Revision: "unknown", Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
