// Browsers allow no worker on pages from a disk. There, the site's search runs in a hidden frame instead.
if (location.protocol === "file:") {
  class FrameWorker extends EventTarget {
    constructor(address) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = this.inside.document.createElement("script");
      script.src = address;
      script.onload = () => {
        const messages = this.waiting;
        this.waiting = null;
        messages.forEach((data) => this.postMessage(data));
      };
      this.inside.document.body.append(script);
    }

    postMessage(data) {
      if (this.waiting) {
        this.waiting.push(data);
      } else {
        this.inside.dispatchEvent(new MessageEvent("message", { data }));
      }
    }
  }
  // The theme's search looks for the first name.
  window.IFrameWorker = FrameWorker;
  window.Worker = FrameWorker;
}
