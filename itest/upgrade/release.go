//go:build unix

package upgrade

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/history"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// Pinned is the commit of the earlier release. CONTRIBUTING.md says when to change this constant.
const Pinned = "d2f0ce80a86ffa82a809084ad72bde744ed6d6fb"

// Release is one of the two binaries that work together.
type Release struct {
	Name, Binary string
	// Plant is a fault of the release that the test must detect.
	Plant Plant
}

// Plant contains settings with which a release stores data in a different way than the other release. A release with an
// empty Plant stores data in the normal way.
type Plant struct {
	// Prefix is the prefix of the release's tables. If the prefix differs, the release has tables of its own, and finds
	// no markers of the other release.
	Prefix string
	// Fingerprint is the policy's setting for the content of a message.
	Fingerprint string
}

// Neighbours returns two releases: the binary of an earlier commit of this repository, and the binary of the current
// tree, which Neighbours builds into the folder.
func Neighbours(ctx context.Context, commit, folder string) (earlier, present Release, err error) {
	binary, err := buildEarlier(ctx, commit)
	if err != nil {
		return Release{}, Release{}, err
	}
	earlier = Release{Name: commit[:7], Binary: binary}
	present.Name = "present"
	present.Binary, err = processes.Build(ctx, folder)
	return earlier, present, err
}

// buildEarlier builds the binary of a commit, once for each version of Go. The binary stays in the folder of package
// services for later runs.
func buildEarlier(ctx context.Context, commit string) (binary string, err error) {
	kept := filepath.Join(services.Folder(), "neighbours")
	binary = filepath.Join(kept, strings.Join([]string{"semel", commit, runtime.Version(), runtime.GOOS, runtime.GOARCH}, "-"))
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	if err := os.MkdirAll(kept, 0o755); err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp(kept, "tree-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := history.Unpack(ctx, commit, folder); err != nil {
		return "", err
	}
	if err := history.Go(ctx, folder, "build", "-o", "semel", "./cmd/semel"); err != nil {
		return "", err
	}
	return binary, os.Rename(filepath.Join(folder, "semel"), binary)
}
