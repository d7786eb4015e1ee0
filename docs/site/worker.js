// A page that was opened as a file may start no worker from another file. The search is the only worker
// here: its source is put in below when the site is built, and started from memory.
if (location.protocol === "file:") {
  const source = "SEARCH_WORKER";
  const FromAddress = window.Worker;
  window.Worker = function () {
    return new FromAddress(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  };
}
