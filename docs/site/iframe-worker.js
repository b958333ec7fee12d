// Browsers start no Worker from file://, and the search of the site runs in one. There, and only there, an iframe takes
// its place: same interface, same script. (Material's own answer to this is a script from another site.)
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const scope = this.frame.contentWindow;
      scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      scope.importScripts = (...urls) => Promise.all(urls.map((one) => this.load(new URL(one, url).href)));
      this.ready = this.load(new URL(url, location.href).href);
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script");
        script.src = url;
        script.onload = resolve;
        script.onerror = () => reject(new Error(`${url} cannot be loaded`));
        this.frame.contentDocument.head.append(script);
      });
    }

    postMessage(data) {
      const scope = this.frame.contentWindow;
      this.ready.then(() => scope.dispatchEvent(new scope.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
