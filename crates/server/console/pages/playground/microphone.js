// Audio worklet that passes the microphone's samples on, a tenth of a second at a time.

const PIECE = sampleRate / 10;

class Microphone extends AudioWorkletProcessor {
  #piece = new Float32Array(PIECE);
  #filled = 0;

  process([[channel]]) {
    for (const sample of channel ?? []) {
      this.#piece[this.#filled] = sample;
      this.#filled += 1;
      if (this.#filled === PIECE) {
        this.port.postMessage(this.#piece.slice());
        this.#filled = 0;
      }
    }
    return true;
  }
}

registerProcessor('microphone', Microphone);
