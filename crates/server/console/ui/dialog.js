// Dialogs: modal boxes, forms, and confirmations of dangerous actions.

import { html, useEffect, useRef, useState } from '../preact.js';
import { Button, Problem } from './components.js';

/** A modal box. Esc, the close button and a click outside of it call `close`. With `stays`, only its content does. */
export function Dialog({ title, label, close, children, className = '', stays }) {
  const box = useRef(null);
  useEffect(() => {
    const dialog = box.current;
    dialog.showModal();
    const cancel = (event) => { event.preventDefault(); if (!stays) close(); };
    // A browser closes the box at a second Esc, even if the first one was prevented.
    const closed = () => (stays ? dialog.showModal() : close());
    dialog.addEventListener('cancel', cancel);
    dialog.addEventListener('close', closed);
    return () => {
      dialog.removeEventListener('cancel', cancel);
      dialog.removeEventListener('close', closed);
      if (dialog.open) dialog.close();
    };
  }, []);
  const outside = (event) => { if (event.target === box.current && !stays) close(); };
  return html`<dialog ref=${box} class=${className} aria-label=${title ?? label} onMouseDown=${outside}>
    ${title && html`<header><h2>${title}</h2>${!stays && html`<${Button} kind="plain" icon="close" aria-label="Close" onClick=${close} />`}</header>`}
    ${children}
  </dialog>`;
}

/** Shows a secret that is not shown again, so the dialog stays until the user says that it is copied. */
export function SecretDialog({ title, close, children }) {
  return html`<${Dialog} title=${title} close=${close} stays>
    <div class="body">${children}</div>
    <footer><${Button} kind="primary" onClick=${close}>I have copied it<//></footer>
  <//>`;
}

/** A dialog with a form, which `send` submits. If it throws, the error is shown and the form stays open. */
export function FormDialog({ title, action, danger, send, close, children, disabled }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await send(new FormData(event.target));
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${title} close=${close}>
    <form onSubmit=${submit}>
      <div class="body">${typeof children === 'function' ? children(error) : children}<${Problem} error=${error} /></div>
      <footer>
        <${Button} onClick=${close}>Cancel<//>
        <${Button} type="submit" kind=${danger ? 'danger' : 'primary'} busy=${busy || disabled}>${action}<//>
      </footer>
    </form>
  <//>`;
}
