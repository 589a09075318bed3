// Dialogs: modal boxes, forms, and confirmations of dangerous actions.

import { html, useEffect, useRef, useState } from '../preact.js';
import { Button, Problem } from './components.js';

/**
 * A modal box. Esc, the close button and a click outside of it call `close`. With `stays`, only its content does. While it is
 * `busy`, nothing does.
 */
export function Dialog({ title, label, close, children, className = '', stays, busy }) {
  const box = useRef(null);
  // The listeners are added once, so they read the current properties here.
  const now = useRef(null);
  now.current = { close, isHeld: stays || busy };
  const leave = () => { if (!now.current.isHeld) now.current.close(); };
  useEffect(() => {
    const dialog = box.current;
    dialog.showModal();
    const cancel = (event) => { event.preventDefault(); leave(); };
    // A browser closes the box at a second Esc, even if the first one was prevented.
    const closed = () => (now.current.isHeld ? dialog.showModal() : leave());
    dialog.addEventListener('cancel', cancel);
    dialog.addEventListener('close', closed);
    return () => {
      dialog.removeEventListener('cancel', cancel);
      dialog.removeEventListener('close', closed);
      if (dialog.open) dialog.close();
    };
  }, []);
  const outside = (event) => { if (event.target === box.current) leave(); };
  return html`<dialog ref=${box} class=${className} aria-label=${title ?? label} onMouseDown=${outside}>
    ${title && html`<header><h2>${title}</h2>${!stays && html`<${Button} kind="plain" icon="close" aria-label="Close" busy=${busy} onClick=${close} />`}</header>`}
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

/**
 * A dialog with a form, which `send` submits. If it throws, the error is shown and the form stays open. It cannot be closed
 * during the request: its answer may have a secret that is shown once, and a form that is opened again would send it twice.
 */
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
  return html`<${Dialog} title=${title} close=${close} busy=${busy}>
    <form onSubmit=${submit}>
      <div class="body">${typeof children === 'function' ? children(error) : children}<${Problem} error=${error} /></div>
      <footer>
        <${Button} busy=${busy} onClick=${close}>Cancel<//>
        <${Button} type="submit" kind=${danger ? 'danger' : 'primary'} busy=${busy || disabled}>${action}<//>
      </footer>
    </form>
  <//>`;
}
