/**
 * Instructions that connect each MCP client to an address of this service. The pages show them, and `npm run clients`
 * writes those with a key to docs/guides/clients.md.
 *
 * If clients can sign in by URL, no snippet has a key; otherwise a snippet has a placeholder, in the form that the
 * client replaces. A link has neither: links are stored in histories and logs.
 */

export interface ConnectTarget {
  /** Short name in the client: letters, digits, `-` and `_`. */
  name: string;
  url: string;
  hasLogin: boolean;
}

export interface Setup {
  /** Where to enter the snippet or address in the client; shown before the snippet. */
  how: string;
  snippet?: { language: 'sh' | 'json'; text: string };
  /** Adds the server when it is opened. */
  link?: string;
  /** The step that follows, as a message. */
  then?: string;
}

export interface Client {
  id: string;
  label: string;
  /** True for a client that calls from machines of its vendor, and sends no key. */
  isHosted?: true;
  setup: (target: ConnectTarget) => Setup;
}

const KEY = 'Set SLIPWAY_KEY to one of your API keys first.';

const json = (value: object) => ({ language: 'json', text: JSON.stringify(value, null, 2) }) as const;
const sh = (...lines: string[]) => ({ language: 'sh', text: lines.join(' \\\n  ') }) as const;

/** Returns the fields of a configuration; they include the key in this form if clients do not sign in. */
const configOf = ({ url, hasLogin }: ConnectTarget, key: string, member = 'url') => ({
  [member]: url,
  ...(!hasLogin && { headers: { Authorization: `Bearer ${key}` } }),
});

const header = ({ hasLogin }: ConnectTarget) => (hasLogin ? [] : ['--header "Authorization: Bearer $SLIPWAY_KEY"']);

export const clients: readonly Client[] = [
  {
    id: 'claude',
    label: 'Claude (web, Desktop, mobile)',
    isHosted: true,
    setup: () => ({
      how: 'In Claude: Customize, Connectors, Add custom connector. Paste the address.',
      then: 'Press Connect, and sign in here.',
    }),
  },
  {
    id: 'claude-code',
    label: 'Claude Code',
    setup: (target) => ({
      how: 'In a terminal:',
      snippet: sh(`claude mcp add --transport http ${target.name} "${target.url}"`, ...header(target)),
      then: target.hasLogin ? 'In Claude Code, enter /mcp and choose Authenticate.' : KEY,
    }),
  },
  {
    id: 'chatgpt',
    label: 'ChatGPT',
    isHosted: true,
    setup: () => ({
      how: 'In ChatGPT: Settings, developer mode, add a server. Paste the address, and choose OAuth.',
      then: 'Sign in here when ChatGPT asks.',
    }),
  },
  {
    id: 'cursor',
    label: 'Cursor',
    setup: (target) => {
      const { name, url } = target;
      const config = Buffer.from(JSON.stringify({ url })).toString('base64');
      return {
        how: 'In .cursor/mcp.json of a project, or ~/.cursor/mcp.json for all:',
        snippet: json({ mcpServers: { [name]: configOf(target, '${env:SLIPWAY_KEY}') } }),
        ...(target.hasLogin
          ? {
              link: `cursor://anysphere.cursor-deeplink/mcp/install?name=${name}&config=${encodeURIComponent(config)}`,
              then: 'Cursor then shows a button to log in.',
            }
          : { then: `Cursor reads the variable. ${KEY}` }),
      };
    },
  },
  {
    id: 'vscode',
    label: 'VS Code',
    setup: (target) => {
      const { name, url, hasLogin } = target;
      const inputs = [{ type: 'promptString', id: 'slipway-key', description: 'Slipway API key', password: true }];
      return {
        how: 'In .vscode/mcp.json:',
        snippet: json({
          ...(!hasLogin && { inputs }),
          servers: { [name]: { type: 'http', ...configOf(target, '${input:slipway-key}') } },
        }),
        ...(hasLogin
          ? {
              link: `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name, type: 'http', url }))}`,
              then: 'VS Code opens a browser to sign in when the server starts.',
            }
          : { then: 'VS Code asks for the key once and stores it.' }),
      };
    },
  },
  {
    id: 'codex',
    label: 'Codex',
    setup: ({ name, url, hasLogin }) => ({
      how: 'In a terminal:',
      snippet: sh(`codex mcp add ${name} --url "${url}"`, ...(hasLogin ? [] : ['--bearer-token-env-var SLIPWAY_KEY'])),
      then: hasLogin ? `Then: codex mcp login ${name}` : `Codex reads the variable at each start. ${KEY}`,
    }),
  },
  {
    id: 'gemini',
    label: 'Gemini CLI',
    setup: (target) => ({
      how: 'In a terminal:',
      snippet: sh(`gemini mcp add --transport http ${target.name} "${target.url}"`, ...header(target)),
      then: target.hasLogin ? `In Gemini CLI: /mcp auth ${target.name}` : KEY,
    }),
  },
  {
    id: 'windsurf',
    label: 'Windsurf',
    setup: (target) => ({
      how: 'In ~/.codeium/windsurf/mcp_config.json:',
      snippet: json({ mcpServers: { [target.name]: configOf(target, '${env:SLIPWAY_KEY}', 'serverUrl') } }),
      then: target.hasLogin ? 'Windsurf opens a browser to sign in.' : `Windsurf reads the variable. ${KEY}`,
    }),
  },
  {
    id: 'mcp-remote',
    label: 'mcp-remote, for programs that start local servers',
    setup: ({ name, url, hasLogin }) => {
      const isPlain = /^http:\/\/(?!localhost[:/]|127\.|\[::1\])/.test(url);
      const args = ['-y', 'mcp-remote', url, '--transport', 'http-only', ...(isPlain ? ['--allow-http'] : [])];
      if (!hasLogin) args.push('--header', 'Authorization:${AUTH_HEADER}');
      const env = { AUTH_HEADER: 'Bearer ${SLIPWAY_KEY}' };
      return {
        how: 'In the configuration of the program:',
        snippet: json({ mcpServers: { [name]: { command: 'npx', args, ...(!hasLogin && { env }) } } }),
        then: hasLogin
          ? 'It opens a browser to sign in, and calls itself "MCP CLI Proxy".'
          : 'Replace ${SLIPWAY_KEY} with one of your API keys. ${AUTH_HEADER} stays: mcp-remote replaces it.',
      };
    },
  },
  {
    id: 'other',
    label: 'another client',
    setup: ({ hasLogin }) => ({
      how: 'Add a remote server with the transport "streamable HTTP", and paste the address.',
      then: hasLogin
        ? 'The client opens a browser to sign in.'
        : 'Send the header Authorization: Bearer, and one of your API keys.',
    }),
  },
];

/**
 * Returns a name that every client accepts and no shell treats as an option. @param word the last name in the address
 */
export function clientNameOf(word: string): string {
  const name = word.replace(/[^A-Za-z0-9_-]+/g, '-');
  return name.replace(/^-+/, '').slice(0, 40).replace(/-+$/, '') || 'slipway';
}
