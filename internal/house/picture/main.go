// Command picture draws pictures of this repository from the imports in the code: the packages, grouped into rooms, and
// the path of a message through the rooms.
//
//	go run ./internal/house/picture
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/semel-go/semel/internal/house"
)

func main() {
	files, err := house.Files(".")
	if err == nil {
		err = draw("docs/pictures/rooms.svg", files, house.WriteRooms)
	}
	if err == nil {
		err = draw("docs/pictures/way.svg", files, house.WriteWay)
	}
	if err == nil {
		err = draw("docs/pictures/retry.svg", files, house.WriteRetryWay)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func draw(path string, files []*house.File, write func(io.Writer, []*house.File) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f, files); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
