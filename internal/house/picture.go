package house

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// The sizes of the pictures, in pixels.
const (
	roomsWidth  = 1060
	wayWidth    = 860
	boxWidth    = 138
	boxHeight   = 34
	floorHeight = 78
)

const pictureHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">
<title>%s</title>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#777"/></marker></defs>
<rect width="100%%" height="100%%" fill="#fff"/>
`

// WriteRooms draws the rooms (groups of packages) as an SVG. An arrow is an import, and all arrows point down. An
// import that also exists indirectly, through another room, has no arrow.
func WriteRooms(w io.Writer, files []*File) error {
	rooms := RoomsOf(files)
	floors, err := rooms.floors()
	if err != nil {
		return err
	}
	where := map[string][2]int{}
	for i, floor := range floors {
		rooms.arrange(floor, where, 30+(len(floors)-1-i)*floorHeight)
	}
	var b strings.Builder
	fmt.Fprintf(&b, pictureHead, roomsWidth, 30+len(floors)*floorHeight, "The rooms of Semel; an arrow is an import")
	for _, floor := range slices.Backward(floors) {
		for _, room := range floor {
			for _, to := range rooms.direct(room) {
				from, at := where[room], where[to]
				fmt.Fprintf(&b, "<path d=\"M%d %dL%d %d\" stroke=\"#999\" fill=\"none\" marker-end=\"url(#tip)\"/>\n", from[0], from[1]+boxHeight/2, at[0], at[1]-boxHeight/2)
			}
		}
	}
	for _, floor := range slices.Backward(floors) {
		for _, room := range floor {
			box(&b, where[room], room)
		}
	}
	_, err = io.WriteString(w, b.String()+"</svg>\n")
	return err
}

// arrange determines the positions of the rooms on one floor of the picture. Each room is above the middle of the rooms
// that it imports, and no two rooms overlap.
func (r Rooms) arrange(floor []string, where map[string][2]int, y int) {
	wish := map[string]int{}
	for i, room := range floor {
		below := r.direct(room)
		if len(below) == 0 {
			wish[room] = roomsWidth * (2*i + 1) / (2 * len(floor))
			continue
		}
		for _, to := range below {
			wish[room] += where[to][0] / len(below)
		}
	}
	slices.SortStableFunc(floor, func(a, b string) int { return wish[a] - wish[b] })
	const apart = boxWidth + 12
	left := boxWidth/2 + 5
	for i, room := range floor {
		rest := len(floor) - 1 - i
		x := min(max(wish[room], left), roomsWidth-boxWidth/2-5-rest*apart)
		where[room] = [2]int{x, y}
		left = x + apart
	}
}

func box(b *strings.Builder, at [2]int, lines ...string) {
	height := boxHeight + 15*(len(lines)-1)
	fmt.Fprintf(b, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\" fill=\"#eef4fb\" stroke=\"#4a6fa5\"/>\n", at[0]-boxWidth/2, at[1]-height/2, boxWidth, height)
	for i, line := range lines {
		y := at[1] + 5 - 15*(len(lines)-1)/2 + 15*i
		weight := ""
		if i == 0 {
			weight = ` font-weight="bold"`
		}
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\"%s>%s</text>\n", at[0], y, weight, line)
	}
}

// step is a room through which a message passes, with the file that does the work.
type step struct {
	room, file, does string
}

// way is the path of one message through the rooms (groups of packages). Each room imports the next room or is imported
// by the next room, so the picture shows only imports that are in the code.
var way = []step{
	{"file", "file/source.go", "delivers"},
	{"source", "source/source.go", "Fetch"},
	{"consumer", "consumer/internal/delivery/recognise.go", "identity, content"},
	{"internal/machine", "internal/machine/machine.go", "decides"},
	{"consumer", "consumer/internal/engine/flight.go", "begin, commit"},
	{"store", "store/store.go", "Begin, Commit"},
	{"sqlstore", "sqlstore/batch.go", "mark, effect"},
	{"consumer", "consumer/internal/engine/settler.go", "settles"},
}

// retryWay is the path of the command semel messages retry for one row, from the command to the handler.
var retryWay = []step{
	{"cmd/semel", "cmd/semel/internal/cli/messages/act.go", "order"},
	{"cmd/semel", "cmd/semel/internal/operate/carry.go", "reads, judges"},
	{"internal/admin", "internal/admin/rows.go", "Requeue"},
	{"sqlstore", "sqlstore/internal/operators/acts.go", "row, marker, act"},
	{"store", "store/lease.go", "Claim"},
	{"consumer", "consumer/internal/inbox/inbox.go", "claims the row"},
	{"internal/machine", "internal/machine/claims.go", "decides"},
	{"consumer", "consumer/internal/engine/flight.go", "begin, commit"},
}

// WriteWay draws the path of one message through the rooms.
func WriteWay(w io.Writer, files []*File) error {
	return writeSteps(w, files, "The way of one message", way)
}

// WriteRetryWay draws the path of the command semel messages retry for one row.
func WriteRetryWay(w io.Writer, files []*File) error {
	return writeSteps(w, files, "The way of a retry", retryWay)
}

// writeSteps draws the steps of a path, from left to right.
func writeSteps(w io.Writer, files []*File, title string, way []step) error {
	rooms := RoomsOf(files)
	for i, s := range way {
		if !slices.ContainsFunc(files, func(f *File) bool { return f.Path == s.file }) {
			return fmt.Errorf("house: the path of a message names %s, which does not exist; update the path in picture.go", s.file)
		}
		if i > 0 && !rooms.neighbours(way[i-1].room, s.room) {
			return fmt.Errorf("house: the path of a message goes from %s to %s, but neither imports the other; update the path in picture.go", way[i-1].room, s.room)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, pictureHead, wayWidth, 190, title)
	const perRow = 4
	at := func(i int) [2]int {
		column := i % perRow
		if i/perRow%2 == 1 { // every second row of the picture goes from right to left
			column = perRow - 1 - column
		}
		return [2]int{wayWidth * (2*column + 1) / (2 * perRow), 50 + i/perRow*90}
	}
	for i := 1; i < len(way); i++ {
		from, to := at(i-1), at(i)
		if from[1] == to[1] {
			side := boxWidth / 2
			if to[0] < from[0] {
				side = -side
			}
			fmt.Fprintf(&b, "<path d=\"M%d %dL%d %d\" stroke=\"#777\" marker-end=\"url(#tip)\"/>\n", from[0]+side, from[1], to[0]-side, to[1])
			continue
		}
		fmt.Fprintf(&b, "<path d=\"M%d %dL%d %d\" stroke=\"#777\" marker-end=\"url(#tip)\"/>\n", from[0], from[1]+32, to[0], to[1]-32)
	}
	for i, s := range way {
		name := s.file[strings.LastIndex(s.file, "/")+1:]
		box(&b, at(i), fmt.Sprintf("%d %s", i+1, strings.TrimPrefix(s.room, "internal/")), name, s.does)
	}
	_, err := io.WriteString(w, b.String()+"</svg>\n")
	return err
}

// neighbours reports whether one room imports the other, or whether both import store or both import source.
func (r Rooms) neighbours(a, b string) bool {
	return a == b || r.reaches(a, b) || r.reaches(b, a) || r.reaches(a, "store") && r.reaches(b, "store") || r.reaches(a, "source") && r.reaches(b, "source")
}
