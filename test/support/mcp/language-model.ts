import { createServer, type IncomingHttpHeaders } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { listen, shut } from '../upstream/upstream-net.js';

/** One question as it arrived. */
export interface Question {
  path: string;
  headers: IncomingHttpHeaders;
  /** Prompt of the model, rules first. */
  prompt: string;
  model: string;
}

/** A text of the model, or a whole HTTP answer; null: no answer, ever. */
export type ModelAnswer = string | { status: number; body: string } | null;

/** A language model on loopback that supports both APIs, by the path of the request. */
export interface LanguageModel {
  origin: string;
  questions: Question[];
  /** Returns the answer to a question; a test may replace it. */
  answer: (question: Question) => ModelAnswer;
  close(): Promise<void>;
}

interface Asked {
  model: string;
  system?: string;
  messages: { role: string; content: string }[];
}

/** Starts one that answers `{}` until a test sets another answer. */
export async function startLanguageModel(): Promise<LanguageModel> {
  const questions: Question[] = [];
  const server = createServer((request, response) => {
    void textOf(request).then((body) => {
      const path = request.url ?? '/';
      const { model, system = '', messages } = JSON.parse(body) as Asked;
      const prompt = [system, ...messages.map(({ content }) => content)].join('\n');
      const question = { path, headers: request.headers, prompt, model };
      questions.push(question);
      const answer = started.answer(question);
      if (answer === null) return;
      if (typeof answer === 'string') response.writeHead(200).end(JSON.stringify(wrapped(path, answer)));
      else response.writeHead(answer.status).end(answer.body);
    });
  });
  const started: LanguageModel = {
    origin: `http://127.0.0.1:${await listen(server)}`,
    questions,
    answer: () => '{}',
    close: () => shut(server),
  };
  return started;
}

function wrapped(path: string, text: string): object {
  if (path.endsWith('/messages')) return { type: 'message', role: 'assistant', content: [{ type: 'text', text }] };
  return { object: 'chat.completion', choices: [{ index: 0, message: { role: 'assistant', content: text } }] };
}
