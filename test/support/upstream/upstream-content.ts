import { RpcError, type RpcMessage } from './upstream-exchange.js';

const resources = [
  { uri: 'docs://readme', name: 'readme', title: 'Read me', mimeType: 'text/markdown', text: '# Read me' },
  { uri: 'docs://pixel', name: 'pixel', mimeType: 'image/gif', blob: 'R0lGODlhAQABAAAAACwAAAAAAQABAAA=' },
];

const resourceTemplates = [{ uriTemplate: 'docs://pages/{slug}', name: 'page', mimeType: 'text/plain' }];

const prompts = [
  {
    name: 'review',
    title: 'Review code',
    description: 'Asks for a review.',
    arguments: [{ name: 'language', description: 'Programming language', required: true }, { name: 'tone' }],
  },
];

const completions: Record<string, string[]> = {
  language: ['php', 'python', 'rust', 'typescript'],
  tone: ['friendly', 'formal'],
  slug: ['pricing', 'privacy'],
};

/** Results of the upstream for resources, prompts and completion; undefined for every other method. */
export function contentResult(method: string, params: RpcMessage, isModern: boolean): object | undefined {
  switch (method) {
    case 'resources/list':
      return { resources: resources.map(({ text, blob, ...listed }) => listed) };
    case 'resources/templates/list':
      return { resourceTemplates };
    case 'resources/read':
      return { contents: [readResource(String(params.uri), isModern)] };
    case 'prompts/list':
      return { prompts };
    case 'prompts/get':
      return getPrompt(params);
    case 'completion/complete':
      return { completion: complete(params.argument as { name: string; value: string } | undefined) };
    default:
      return undefined;
  }
}

function readResource(uri: string, isModern: boolean): object {
  const resource = resources.find((resource) => resource.uri === uri);
  if (resource)
    return { uri, mimeType: resource.mimeType, ...(resource.blob ? { blob: resource.blob } : { text: resource.text }) };
  const slug = /^docs:\/\/pages\/([^/]+)$/.exec(uri)?.[1];
  if (slug) return { uri, mimeType: 'text/plain', text: `Page ${slug}` };
  throw new RpcError(isModern ? -32602 : -32002, 'Resource not found', { uri });
}

function getPrompt(params: RpcMessage): object {
  const prompt = prompts.find(({ name }) => name === params.name);
  if (!prompt) throw new RpcError(-32602, `Unknown prompt: ${String(params.name)}`);
  const { language, tone = 'friendly' } = (params.arguments ?? {}) as Record<string, string>;
  if (language === undefined) throw new RpcError(-32602, 'Missing required argument: language');
  const text = `Review this ${language} code, be ${tone}.`;
  return { description: prompt.description, messages: [{ role: 'user', content: { type: 'text', text } }] };
}

function complete(argument: { name: string; value: string } | undefined): object {
  if (!argument) throw new RpcError(-32602, 'Missing argument');
  const values = (completions[argument.name] ?? []).filter((value) => value.startsWith(argument.value));
  return { values, total: values.length, hasMore: false };
}
