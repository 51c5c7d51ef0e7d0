// Posts so many lines of folded stacks with an encoding, and prints the status and the body of the answer.
//
// Usage: push URL LINES ENCODING
package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
)

func main() {
	count, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	body := bytes.Repeat([]byte("main;work 1\n"), count)
	request, err := http.NewRequest("POST", os.Args[1], bytes.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Content-Encoding", os.Args[3])
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.StatusCode, string(text))
}
