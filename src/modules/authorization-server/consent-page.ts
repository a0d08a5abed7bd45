import { actions, button, buttonLink, card, empty, facts, list, notice, who } from '../../platform/pages/components.js';
import type { Framed } from '../../platform/pages/frame.js';
import { fieldAs, formOf } from '../../platform/pages/forms.js';
import { html, type Html } from '../../platform/pages/html.js';
import { page, type Page, type PageEnv } from '../../platform/pages/page.js';
import { timeOf } from '../../platform/pages/times.js';
import { qualifiedNameOf, type Target } from '../targets/target.types.js';
import type { ShownGrant } from './authorization-server.types.js';

export interface ConsentView {
  personName: string;
  client: { name: string; host: string | null };
  target: Target;
  redirectUri: string;
  /** True for an https redirect URI to another machine. */
  mayRemember: boolean;
  action: string;
  formToken: Html;
  accountId: string;
}

const allowed: Record<Target['kind'], string> = {
  connection: 'use the tools of this connection, with the access that is stored for it',
  namespace: 'use the tools of all connections of this namespace, including those that are added later',
  server: 'use the tools of this server',
};

const kindNames: Record<Target['kind'], string> = {
  connection: 'Connection',
  namespace: 'All connections of the namespace',
  server: 'Server',
};

export function consentPage(env: PageEnv, view: ConsentView): Page {
  const { client, target, personName, redirectUri } = view;
  const { protocol, host, hostname } = new URL(redirectUri);
  const program = /^(localhost|127\.|\[::1\])/.test(hostname) ? host : protocol;
  const place =
    protocol === 'https:' ? html`<code>${host}</code>` : html`a program on this computer (<code>${program}</code>)`;
  const name = qualifiedNameOf(target);
  const label = name !== target.title && html` <small>${name}</small>`;
  return page(
    env,
    `Authorize ${client.name}?`,
    html`<p><strong>${client.name}</strong> asks to ${allowed[target.kind]}, in your name.</p>
${facts([
  [
    'Asks',
    html`${client.name} <small>${client.host === null ? 'unverified: an app gives itself any name' : `verified: ${client.host}`}</small>`,
  ],
  [kindNames[target.kind], html`<strong>${target.title}</strong>${label}`],
  ['Answer goes to', place],
  ['You are', `${personName} at ${env.appName}`],
])}
<form method="post" action="${view.action}">${view.formToken}<input type="hidden" name="account" value="${view.accountId}">
${view.mayRemember && html`<label class="choice"><input type="checkbox" name="remember" value="yes"> <span>Do not ask again for this app and this address</span></label>`}
${actions(button('Allow', { look: 'primary', name: 'answer', value: 'allow' }), button('Do not allow', { name: 'answer', value: 'deny' }))}
<p class="soft">Continue only if you have just asked ${client.name} to connect. You can revoke this access at any time under
<a href="../me/access">Apps that may act for you</a>. Not you?</p>
${button('Sign in as somebody else', { look: 'ghost', name: 'answer', value: 'other' })}
</form>`,
  );
}

export function nothingHerePage(
  env: PageEnv,
  view: {
    personName: string;
    clientName: string;
    resource: string;
    action: string;
    formToken: Html;
    accountId: string;
    /** Restricted server to which the user can request access; null for any other target. */
    restricted: string | null;
  },
): Page {
  const form = html`<form method="post" action="${view.action}">${view.formToken}`;
  const asking = html`${notice(
    html`${view.clientName} asks for <strong>${view.restricted}</strong>. Its owner has not let
<strong>${view.personName}</strong> use it.`,
    'wait',
  )}
${form}<input type="hidden" name="account" value="${view.accountId}">
${fieldAs({ id: 'text', name: 'text', label: 'Your reason, for the owner', attributes: html`maxlength="500" required` })}
${actions(button('Ask for access', { look: 'primary', name: 'answer', value: 'ask' }))}</form>`;
  const missing = html`${notice(
    html`${view.clientName} asks for <code>${view.resource}</code>. There is no such connection or server, or
<strong>${view.personName}</strong> cannot use it. Check the address in your app, or ask its owner.`,
    'wait',
  )}`;
  return page(
    env,
    'Nothing to authorize',
    html`${view.restricted === null ? missing : asking}
${form}
<p><button type="submit" name="answer" value="deny">Back to ${view.clientName}</button></p>
<p><button type="submit" name="answer" value="other">Sign in as somebody else</button></p></form>`,
  );
}

export function askedPage(env: PageEnv, view: { clientName: string; action: string; formToken: Html }): Page {
  return page(
    env,
    'Asked for access',
    html`${notice(`The owner reads your request. Connect ${view.clientName} again when you have access.`)}
<form method="post" action="${view.action}">${view.formToken}
<p><button type="submit" name="answer" value="deny">Back to ${view.clientName}</button></p></form>`,
  );
}

/** Lists the newest first. `older` is the number of the next page; null without one. */
export function accessPage(
  { grants, older, isEnded }: { grants: ShownGrant[]; older: number | null; isEnded: boolean },
  formToken: Html,
): Framed {
  const rows = grants.map(
    ({ id, clientName, clientHost, redirectKey, address, title, resource, createdAt, lastUsedAt }) =>
      [
        who(
          clientName,
          html`${clientHost ?? 'unverified'} · may use <strong>${title}</strong> ${resource}<br>authorized ${timeOf(createdAt.toISOString())}${address !== null && ` from ${address}`}, answers to ${placeOf(redirectKey)}, last used ${lastUsedAt ? timeOf(lastUsedAt.toISOString()) : 'never'}`,
        ),
        actions(
          formOf(
            { token: formToken, address: '' },
            'access',
            [html`<input type="hidden" name="grant" value="${id}">`],
            button('End access', { look: 'small ghost danger', about: `End access: ${clientName}` }),
            { action: 'access' },
          ),
        ),
      ] as const,
  );
  return {
    title: 'Apps that may act for you',
    notice: isEnded && 'The access has ended: the app must ask you again.',
    asRequest: '/accounts/me/logins',
    crumbs: [['Account', 'me'], ['Apps']],
    head: { lead: 'Apps you revoke must ask again. Manage API keys on your account page.' },
    body: card(
      'apps',
      'Apps',
      html`${grants.length === 0 ? empty('No apps', 'You have not authorized any apps.', buttonLink('../ui/catalogue', 'Find a server')) : list(rows)}
${older !== null && html`<p><a href="?page=${older}">Older logins</a></p>`}`,
      { count: grants.length },
    ),
  };
}

export function placeOf(redirectKey: string): string {
  const { protocol, host } = new URL(redirectKey);
  return protocol === 'https:' ? host : 'a program on your computer';
}
