// Audio of a realtime session: reads samples from the microphone, and plays received samples.

import { SAMPLE_RATE } from './session.js';

/** Plays pieces of audio one after the other. */
export class Player {
  #context = null;
  #next = 0;

  play(samples) {
    if (!samples.length) return;
    this.#context ??= new AudioContext({ sampleRate: SAMPLE_RATE });
    const context = this.#context;
    const buffer = context.createBuffer(1, samples.length, SAMPLE_RATE);
    buffer.copyToChannel(samples, 0);
    const source = context.createBufferSource();
    source.buffer = buffer;
    source.connect(context.destination);
    this.#next = Math.max(this.#next, context.currentTime);
    source.start(this.#next);
    this.#next += buffer.duration;
  }

  /** Stops immediately, because the user speaks or the session is over. */
  stop() {
    this.#context?.close();
    this.#context = null;
    this.#next = 0;
  }
}

/** Passes samples of the microphone to `onSamples`. Returns a function that stops it. */
export async function listenToMicrophone(onSamples) {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1, echoCancellation: true } });
  const context = new AudioContext({ sampleRate: SAMPLE_RATE });
  await context.audioWorklet.addModule(new URL('./microphone.js', import.meta.url));
  const source = context.createMediaStreamSource(stream);
  const node = new AudioWorkletNode(context, 'microphone');
  node.port.onmessage = ({ data }) => onSamples(data);
  source.connect(node);
  return () => {
    stream.getTracks().forEach((track) => track.stop());
    context.close();
  };
}
