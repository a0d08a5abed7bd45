/** A server made with FastMCP, whose tool writes three log messages. Given to Node on stdin, as client.mjs is. */
import process from 'node:process';
import { FastMCP } from 'fastmcp';

const [port, stateless] = process.argv.slice(2);
const server = new FastMCP({ name: 'compat', version: '1.0.0' });
server.addTool({
  name: 'log',
  description: 'Writes three log messages.',
  execute: async (_args, { log }) => {
    for (const text of ['one', 'two', 'three']) log.info(text);
    return 'done';
  },
});
await server.start({
  transportType: 'httpStream',
  httpStream: { port: Number(port), host: '127.0.0.1', stateless: stateless === 'stateless' },
});
