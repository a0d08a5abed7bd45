/** Serves a bundled module over streamable HTTP, without sessions. Given to Node on stdin, as client.mjs is. */
import { createServer } from 'node:http';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';

const [port, file] = process.argv.slice(2);
const { default: makeServer } = await import(pathToFileURL(file).href);
createServer(async (request, response) => {
  const server = makeServer();
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on('close', () => void server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response);
}).listen(Number(port), '127.0.0.1');
