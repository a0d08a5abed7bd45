import type { AuthorizationServer } from '../../mcp/oauth/discovery.js';
import { escaped, page, type Page } from '../../platform/pages/page.js';

/** What {@link setupPage} names. */
export interface SetupPageView {
  label: string;
  /** Its host; for code that runs here its server's name. */
  upstreamHost: string;
  issuerHost: string;
  signInHost: string;
  scopes: string[];
  /** Where the button posts to; default the page's own address. */
  action?: string;
}

/** Who takes part in an authorization, in words for {@link setupPage}. */
export function placesOf(
  upstreamUrl: string,
  { issuer, authorizationEndpoint, adapter }: AuthorizationServer,
): Pick<SetupPageView, 'upstreamHost' | 'issuerHost' | 'signInHost'> {
  const signInHost = new URL(authorizationEndpoint).host;
  if (adapter !== undefined) return { upstreamHost: adapter, issuerHost: signInHost, signInHost };
  return { upstreamHost: new URL(upstreamUrl).host, issuerHost: new URL(issuer).host, signInHost };
}

/** The page of a setup link. */
export function setupPage({ label, upstreamHost, issuerHost, signInHost, scopes, action }: SetupPageView): Page {
  const list = scopes.map((scope) => `<li><code>${escaped(scope)}</code></li>`).join('');
  const rows: [name: string, html: string][] = [
    ['MCP server', escaped(label)],
    ['The access is handed to', `<code>${escaped(upstreamHost)}</code>`],
    ['You sign in at', `<code>${escaped(signInHost)}</code>`],
    ...(issuerHost === signInHost
      ? []
      : [['in the name of', `<code>${escaped(issuerHost)}</code>`] as [string, string]]),
    ['It will be asked for', list === '' ? 'what is given by default' : `<ul>${list}</ul>`],
  ];
  return page(
    `Authorize ${label}`,
    `<p>Slipway asks for access to the MCP server <strong>${escaped(label)}</strong> in your name. You decide about it at
<strong>${escaped(signInHost)}</strong>, where the button leads; Slipway never sees your password.</p>
<dl>
${rows.map(([name, html]) => `<div><dt>${name}</dt><dd>${html}</dd></div>`).join('\n')}
</dl>
<form method="post"${action === undefined ? '' : ` action="${escaped(action)}"`}><button type="submit">Continue to ${escaped(signInHost)}</button></form>
<p class="soft">Whoever can use this server through Slipway then acts with the access you give. Go on only if you expected this
page; otherwise close it, and nothing happens.</p>`,
  );
}

/** The page after an authorization that was stored. */
export function donePage(result: { label: string; upstreamHost: string }): Page {
  return page(
    'Authorized',
    `<p role="status">Slipway may now use <strong>${escaped(result.label)}</strong> at <code>${escaped(result.upstreamHost)}</code>.</p>
<p>Whatever waited for this continues by itself. You can close this page.</p>`,
  );
}
