// Command modproxy writes the modules of this tree as the files of a Go module proxy. With the files of modproxy, the
// modules can be built, tidied and fetched like published modules, before they are published. With -unpack the command
// also unpacks each module archive into a folder, at the module's path below -root:
//
//	modproxy -root . -out DIR [-unpack DIR]
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

// The version with which the modules of this tree require each other.
const version = "v0.0.0"

func main() {
	root := flag.String("root", ".", "folder with go.work")
	out := flag.String("out", "", "folder to write the proxy to")
	unpack := flag.String("unpack", "", "folder to unpack the modules into")
	flag.Parse()
	if *out == "" {
		fmt.Fprintln(os.Stderr, "modproxy: -out is missing")
		os.Exit(2)
	}
	if err := run(*root, *out, *unpack); err != nil {
		fmt.Fprintln(os.Stderr, "modproxy:", err)
		os.Exit(1)
	}
}

func run(root, out, unpack string) error {
	data, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		return err
	}
	work, err := modfile.ParseWork("go.work", data, nil)
	if err != nil {
		return err
	}
	for _, use := range work.Use {
		archive, mod, err := publish(filepath.Join(root, use.Path), out)
		if err == nil && unpack != "" {
			err = zip.Unzip(filepath.Join(unpack, use.Path), mod, archive) // go.work lists outer folders before the folders inside them
		}
		if err != nil {
			return fmt.Errorf("%s: %w", use.Path, err)
		}
	}
	return nil
}

// publish writes the four files that the go command requests from a proxy. The results are the path of the archive and
// the module in the archive.
func publish(dir, out string) (archive string, mod module.Version, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", mod, err
	}
	mod = module.Version{Path: modfile.ModulePath(text), Version: version}
	escaped, err := module.EscapePath(mod.Path)
	if err != nil {
		return "", mod, err
	}
	folder := filepath.Join(out, escaped, "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", mod, err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Unix(0, 0).UTC()})
	if err != nil {
		return "", mod, err
	}
	for name, content := range map[string][]byte{"list": []byte(version + "\n"), version + ".info": info, version + ".mod": text} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return "", mod, err
		}
	}
	archive = filepath.Join(folder, version+".zip")
	file, err := os.Create(archive)
	if err != nil {
		return "", mod, err
	}
	defer file.Close()
	if err := zip.CreateFromDir(file, mod, dir); err != nil {
		return "", mod, err
	}
	return archive, mod, file.Close()
}
