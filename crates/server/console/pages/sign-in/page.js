// Sign-in with an admin token, or with a link that works once.

import { html, useEffect, useState } from '../../preact.js';
import { post } from '../../api.js';
import { read } from '../../router.js';
import { MARK } from '../../ui/icon.js';
import { Button, Field, Problem } from '../../ui/components.js';

const LINK_FAILED = 'This link was used already, or it is too old. Make a new one with “tollgate token sign-in-link”, or sign in with a token.';

export function SignIn({ begin }) {
  const [token, setToken] = useState('');
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const open = async (credential) => {
    setBusy(true);
    setError(null);
    try {
      begin(await post('/session', credential));
    } catch (failure) {
      setError(credential.code && failure.status === 401 ? { message: LINK_FAILED } : failure);
    } finally {
      setBusy(false);
    }
  };
  useEffect(() => {
    const { page, query } = read();
    if (page !== 'sign-in' || !query.code) return;
    // The code works only once, so it must not stay in the address.
    history.replaceState(null, '', '#/overview');
    open({ code: query.code });
  }, []);
  const submit = (event) => { event.preventDefault(); open({ token: token.trim() }); };
  return html`<main class="sign-in"><form class="card" onSubmit=${submit}>
    <div class="brand"><img src=${MARK} alt="" />Tollgate</div>
    <${Field} label="Admin token" hint=${html`Create one with <code>tollgate token create NAME --role owner</code>.`}>
      <input type="password" autocomplete="current-password" value=${token} onInput=${(event) => setToken(event.target.value)} autofocus required />
    <//>
    <${Problem} error=${error} />
    <${Button} type="submit" kind="primary" busy=${busy}>Sign in<//>
  </form></main>`;
}
