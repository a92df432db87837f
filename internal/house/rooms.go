package house

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const module = "github.com/semel-go/semel"

// undrawn contains folders that the pictures do not show, or show as a part of another room.
var undrawn = []string{"examples", "itest"}

// roomOf returns the room in which a folder is drawn, or "" if the folder is not drawn. The folders below
// internal that do not depend on Semel's types are drawn as one room.
func roomOf(folder string, leaf func(folder string) bool) string {
	first, rest, _ := strings.Cut(folder, "/")
	switch {
	case slices.Contains(undrawn, first), strings.HasPrefix(folder, "internal/house"), strings.HasPrefix(folder, "internal/simulator"):
		return ""
	case first == "cmd":
		return "cmd/semel"
	case folder == "internal/machine" || first == "internal" && !leaf(folder):
		return folder
	case first == "internal":
		return "internal"
	case folder == ".":
		return "semel"
	case strings.HasPrefix(rest, "internal"):
		return first
	}
	return folder
}

// Rooms contains, for each room (group of packages) of the product, the list of the rooms that it imports.
type Rooms map[string][]string

// RoomsOf computes the rooms from the imports of the files.
func RoomsOf(files []*File) Rooms {
	folders := importsOf(files)
	leaf := func(folder string) bool {
		return !slices.ContainsFunc(slices.Collect(maps.Keys(folders[folder])), func(to string) bool { return !strings.HasPrefix(to, "internal/") })
	}
	found := map[string]map[string]bool{}
	for folder, imports := range folders {
		from := roomOf(folder, leaf)
		if from == "" {
			continue
		}
		if found[from] == nil {
			found[from] = map[string]bool{}
		}
		for folder := range imports {
			if to := roomOf(folder, leaf); to != "" && to != from {
				found[from][to] = true
			}
		}
	}
	rooms := Rooms{}
	for room, imports := range found {
		rooms[room] = slices.Sorted(maps.Keys(imports))
	}
	return rooms
}

// importsOf returns, for each folder, the other folders of the repository that the folder imports. Imports of tests are
// left out.
func importsOf(files []*File) map[string]map[string]bool {
	folders := map[string]map[string]bool{}
	for _, f := range files {
		if f.Test() {
			continue
		}
		if folders[f.Package()] == nil {
			folders[f.Package()] = map[string]bool{}
		}
		for _, spec := range f.Tree.Imports {
			path, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module)
			if !ours {
				continue
			}
			if path = strings.TrimPrefix(path, "/"); path == "" {
				path = "."
			}
			folders[f.Package()][path] = true
		}
	}
	return folders
}

// floors returns the rooms by their height in the picture. Each room is above all rooms that it imports.
func (r Rooms) floors() ([][]string, error) {
	height := map[string]int{}
	for range r {
		changed := false
		for room, imports := range r {
			for _, below := range imports {
				if height[room] <= height[below] {
					height[room], changed = height[below]+1, true
				}
			}
		}
		if !changed {
			return byHeight(height, r), nil
		}
	}
	return nil, fmt.Errorf("house: the rooms have an import cycle: %v", r)
}

func byHeight(height map[string]int, r Rooms) [][]string {
	var floors [][]string
	for _, room := range slices.Sorted(maps.Keys(r)) {
		for len(floors) <= height[room] {
			floors = append(floors, nil)
		}
		floors[height[room]] = append(floors[height[room]], room)
	}
	return floors
}

// direct returns the imports of a room, without those that also exist through another room.
func (r Rooms) direct(room string) []string {
	var out []string
	for _, to := range r[room] {
		around := slices.ContainsFunc(r[room], func(by string) bool { return by != to && r.reaches(by, to) })
		if !around {
			out = append(out, to)
		}
	}
	return out
}

func (r Rooms) reaches(from, to string) bool {
	return slices.ContainsFunc(r[from], func(by string) bool { return by == to || r.reaches(by, to) })
}
