/** A module to publish. test/compat/serve.mjs serves the same code directly. */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { z } from 'zod';

/** Makes a server with a tool, a resource and a prompt. */
export default function createServer() {
  const server = new McpServer({ name: 'compat', version: '1.0.0' }, { instructions: 'Call echo.' });
  const about = { title: 'Echo', description: 'Repeats a message.', inputSchema: { message: z.string() } };
  const outputSchema = { message: z.string() };
  server.registerTool('echo', { ...about, outputSchema }, ({ message }) => ({
    content: [{ type: 'text', text: message }],
    structuredContent: { message },
  }));
  server.registerResource('greeting', 'compat://greeting', { mimeType: 'text/plain' }, ({ href }) => ({
    contents: [{ uri: href, text: 'Hello' }],
  }));
  server.registerPrompt('greet', { argsSchema: { name: z.string() } }, ({ name }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Greet ${name}.` } }],
  }));
  return server.server;
}
