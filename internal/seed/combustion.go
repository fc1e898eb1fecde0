package seed

import (
	"bytes"
	"regexp"
	"strings"
)

// Combustion runs its script at the first boot; if the script cannot be started,
// or fails, the machine does not come up. What cannot be started for certain is
// found here.

// CheckCombustion checks a script for Combustion.
func CheckCombustion(text string) []Finding {
	if found := checkText(text); found != nil {
		return found
	}
	const advice = "Begin it with #!/bin/bash, and, if it needs the network, # combustion: network in the second line"
	trimmed := strings.TrimSpace(text)
	switch {
	case trimmed == "":
		return finding("it is empty, so Combustion does nothing", advice)
	case strings.HasPrefix(trimmed, "\ufeff"):
		return finding("it begins with a byte order mark, so its first line is not read as #!", "Save the file without it, or use trimprefix(…, \"\\ufeff\")")
	case strings.HasPrefix(trimmed, "{") && jsonSyntax(text) == nil:
		return finding("it is JSON, and Combustion runs scripts", "Give an Ignition configuration to a libvirt_ignition; a machine may have both")
	case encodes(trimmed, func(plain []byte) bool { return bytes.HasPrefix(plain, []byte("#!")) }):
		return finding("it is encoded in base64, which Combustion does not undo", "Give the plain text, with base64decode(…)")
	case mimeField.MatchString(trimmed):
		return finding("it is a MIME message, and Combustion runs scripts", "Give it to a libvirt_cloudinit_disk")
	}
	switch formatOf(text) {
	case unknownFormat, script:
	case cloudConfig, cloudConfigArchive, jsonPatch, jinja, upstart:
		return finding("it is for cloud-init, and Combustion runs scripts", "Give it to a libvirt_cloudinit_disk, or write a script")
	}
	return append(checkInterpreter(text, advice), checkMarkers(text)...)
}

// checkInterpreter checks the first line.
func checkInterpreter(text, advice string) []Finding {
	line, _, _ := strings.Cut(text, "\n")
	at := func(column int, warning bool, problem, advice string) []Finding {
		return []Finding{{Warning: warning, Line: 1, Column: column, Problem: problem, Advice: advice}}
	}
	interpreter, ok := strings.CutPrefix(line, "#!")
	if !ok {
		if strings.HasPrefix(strings.TrimSpace(text), "#!") {
			return at(1, false, "#! does not stand at the very beginning, so it is a comment", "Remove what stands before it, also spaces and empty lines")
		}
		return at(1, true, "it does not begin with #!, so the shell that finds it runs it, whichever that is", advice)
	}
	switch {
	case strings.HasSuffix(interpreter, "\r"):
		return at(len(line), false, "its lines end as on Windows, so the interpreter's name ends in a carriage return, and is not found", `Save it with Unix line ends, or use replace(…, "\r\n", "\n")`)
	case strings.TrimSpace(interpreter) == "":
		return at(3, false, "its first line names no interpreter", advice)
	case !strings.HasPrefix(strings.TrimLeft(interpreter, " \t"), "/"):
		return at(3, false, "its interpreter is not an absolute path, so it is not found", advice)
	}
	return nil
}

var (
	marker      = regexp.MustCompile(`(?im)^[ \t]*#+[ \t]*combustion[ \t]*:.*$`)
	markerWords = regexp.MustCompile(`^# combustion:.*\b(network|prepare)\b`)
)

// checkMarkers finds lines that look like one with which a script tells
// Combustion what it needs, and that Combustion does not recognise.
func checkMarkers(text string) []Finding {
	var found []Finding
	for _, span := range marker.FindAllStringIndex(text, 3) {
		if markerWords.MatchString(text[span[0]:span[1]]) {
			continue
		}
		line, column := position(text, span[0])
		found = append(found, Finding{Warning: true, Line: line, Column: column, Problem: "Combustion does not recognise this marker",
			Advice: "Write # combustion: network, # combustion: prepare, or # combustion: network prepare, at the beginning of the line and just so"})
	}
	return found
}
