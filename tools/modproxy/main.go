// Command modproxy makes a module proxy of files from the tree, so that the
// modules can be built, tidied and fetched as a stranger would before they are
// published:
//
//	modproxy -root . -out DIR
//	GOWORK=off GOFLAGS=-mod=mod GONOSUMDB=github.com/semel-go/* GOPROXY=file://DIR,… go get github.com/semel-go/semel@v0.0.0
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// version is what the modules of the tree require of one another.
const version = "v0.0.0"

func main() {
	root := flag.String("root", ".", "folder with go.work")
	out := flag.String("out", "", "folder to write the proxy to")
	flag.Parse()
	if *out == "" {
		fmt.Fprintln(os.Stderr, "modproxy: -out is missing")
		os.Exit(2)
	}
	if err := run(*root, *out); err != nil {
		fmt.Fprintln(os.Stderr, "modproxy:", err)
		os.Exit(1)
	}
}

func run(root, out string) error {
	data, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		return err
	}
	work, err := modfile.ParseWork("go.work", data, nil)
	if err != nil {
		return err
	}
	for _, use := range work.Use {
		if err := publish(filepath.Join(root, use.Path), out); err != nil {
			return fmt.Errorf("%s: %w", use.Path, err)
		}
	}
	return nil
}

// publish writes the four files that the go command asks a proxy for.
func publish(dir, out string) error {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	path := modfile.ModulePath(mod)
	escaped, err := module.EscapePath(path)
	if err != nil {
		return err
	}
	folder := filepath.Join(out, escaped, "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Unix(0, 0).UTC()})
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"list": []byte(version + "\n"), version + ".info": info, version + ".mod": mod} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return err
		}
	}
	archive, err := os.Create(filepath.Join(folder, version+".zip"))
	if err != nil {
		return err
	}
	defer archive.Close()
	if err := zip.CreateFromDir(archive, module.Version{Path: path, Version: version}, dir); err != nil {
		return err
	}
	return archive.Close()
}
