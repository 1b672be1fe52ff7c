/* Templates of the known families, with what makes theirs different, and what PyPI's jinja2 3 renders by them (its
 * settings those of transformers: trim_blocks, lstrip_blocks) from the conversations of test_chat.c. The first is the
 * one in SmolLM2-135M-Instruct's file. */
#ifndef TESTS_ENGINE_CHAT_TEMPLATES_H
#define TESTS_ENGINE_CHAT_TEMPLATES_H

enum { N_CONVERSATIONS = 3 };

static const struct chat_case {
    const char *family, *text;
    const char *rendered[N_CONVERSATIONS][2]; /* without and with the prompt for an answer */
} chat_cases[] = {
    {"ChatML",
     "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n"
     "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
     "' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n"
     "' + message['content'] + '<|im_end|>' + '\n"
     "'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n"
     "' }}{% endif %}",
     {
         {"<|im_start|>system\n"
          "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
          "<|im_start|>user\n"
          "Hi <|im_end|><|im_end|>\n",
          "<|im_start|>system\n"
          "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
          "<|im_start|>user\n"
          "Hi <|im_end|><|im_end|>\n"
          "<|im_start|>assistant\n"},
         {"<|im_start|>system\n"
          "Be brief.<|im_end|>\n"
          "<|im_start|>user\n"
          "  What is 2+2?\n"
          "<|im_end|>\n"
          "<|im_start|>assistant\n"
          "\xE3\x80\x80"
          "4\xC2\xA0\x1F<|im_end|>\n",
          "<|im_start|>system\n"
          "Be brief.<|im_end|>\n"
          "<|im_start|>user\n"
          "  What is 2+2?\n"
          "<|im_end|>\n"
          "<|im_start|>assistant\n"
          "\xE3\x80\x80"
          "4\xC2\xA0\x1F<|im_end|>\n"
          "<|im_start|>assistant\n"},
         {"<|im_start|>system\n"
          "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
          "<|im_start|>user\n"
          "<|im_end|>\n"
          "<|im_start|>system\n"
          "late<|im_end|>\n",
          "<|im_start|>system\n"
          "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
          "<|im_start|>user\n"
          "<|im_end|>\n"
          "<|im_start|>system\n"
          "late<|im_end|>\n"
          "<|im_start|>assistant\n"},
     }},
    {"ChatML",
     "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role }}\n"
     "{{ m.content }}<|im_end|>\n"
     "{{ '' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
     {
         {"<|begin_of_text|><|im_start|>user\n"
          "Hi <|im_end|><|im_end|>\n",
          "<|begin_of_text|><|im_start|>user\n"
          "Hi <|im_end|><|im_end|>\n"
          "<|im_start|>assistant\n"},
         {"<|begin_of_text|><|im_start|>system\n"
          "Be brief.<|im_end|>\n"
          "<|im_start|>user\n"
          "  What is 2+2?\n"
          "<|im_end|>\n"
          "<|im_start|>assistant\n"
          "\xE3\x80\x80"
          "4\xC2\xA0\x1F<|im_end|>\n",
          "<|begin_of_text|><|im_start|>system\n"
          "Be brief.<|im_end|>\n"
          "<|im_start|>user\n"
          "  What is 2+2?\n"
          "<|im_end|>\n"
          "<|im_start|>assistant\n"
          "\xE3\x80\x80"
          "4\xC2\xA0\x1F<|im_end|>\n"
          "<|im_start|>assistant\n"},
         {"<|begin_of_text|><|im_start|>user\n"
          "<|im_end|>\n"
          "<|im_start|>system\n"
          "late<|im_end|>\n",
          "<|begin_of_text|><|im_start|>user\n"
          "<|im_end|>\n"
          "<|im_start|>system\n"
          "late<|im_end|>\n"
          "<|im_start|>assistant\n"},
     }},
    {"ChatML",
     "{%- if tools %}\n"
     "    {{- '<|im_start|>system\\n' }}\n"
     "    {%- if messages[0]['role'] == 'system' %}\n"
     "        {{- messages[0]['content'] }}\n"
     "    {%- else %}\n"
     "        {{- 'You help.' }}\n"
     "    {%- endif %}\n"
     "    {{- \"\\n\\n<tools>\" }}{{- tools | tojson }}{{- \"\\n</tools> in <tool_call></tool_call>: {\\\"name\\\": "
     "<function-name>}<|im_end|>\\n\" }}\n"
     "{%- else %}\n"
     "    {%- if messages[0]['role'] == 'system' %}\n"
     "        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}\n"
     "    {%- else %}\n"
     "        {{- '<|im_start|>system\\nYou help.<|im_end|>\\n' }}\n"
     "    {%- endif %}\n"
     "{%- endif %}\n"
     "{%- for message in messages %}\n"
     "    {%- if message.role == \"user\" or message.role == \"assistant\" or not loop.first %}\n"
     "        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}\n"
     "    {%- endif %}\n"
     "{%- endfor %}\n"
     "{%- if add_generation_prompt %}\n"
     "    {{- '<|im_start|>assistant\\n' }}\n"
     "{%- endif %}\n",
     {
         {"<|im_start|>system\n"
          "You help.<|im_end|>\n"
          "<|im_start|>user\n"
          "Hi <|im_end|><|im_end|>\n",
          "<|im_start|>system\n"
          "You help.<|im_end|>\n"
          "<|im_start|>user\n"
          "Hi <|im_end|><|im_end|>\n"
          "<|im_start|>assistant\n"},
         {"<|im_start|>system\n"
          "Be brief.<|im_end|>\n"
          "<|im_start|>user\n"
          "  What is 2+2?\n"
          "<|im_end|>\n"
          "<|im_start|>assistant\n"
          "\xE3\x80\x80"
          "4\xC2\xA0\x1F<|im_end|>\n",
          "<|im_start|>system\n"
          "Be brief.<|im_end|>\n"
          "<|im_start|>user\n"
          "  What is 2+2?\n"
          "<|im_end|>\n"
          "<|im_start|>assistant\n"
          "\xE3\x80\x80"
          "4\xC2\xA0\x1F<|im_end|>\n"
          "<|im_start|>assistant\n"},
         {"<|im_start|>system\n"
          "You help.<|im_end|>\n"
          "<|im_start|>user\n"
          "<|im_end|>\n"
          "<|im_start|>system\n"
          "late<|im_end|>\n",
          "<|im_start|>system\n"
          "You help.<|im_end|>\n"
          "<|im_start|>user\n"
          "<|im_end|>\n"
          "<|im_start|>system\n"
          "late<|im_end|>\n"
          "<|im_start|>assistant\n"},
     }},
    {"Llama 3",
     "{% for message in messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n"
     "\n"
     "'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% "
     "endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ "
     "'<|start_header_id|>assistant<|end_header_id|>\n"
     "\n"
     "' }}{% endif %}",
     {
         {"<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n"
          "\n"
          "Hi <|im_end|><|eot_id|>",
          "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n"
          "\n"
          "Hi <|im_end|><|eot_id|><|start_header_id|>assistant<|end_header_id|>\n"
          "\n"},
         {"<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n"
          "\n"
          "Be brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n"
          "\n"
          "What is 2+2?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n"
          "\n"
          "4<|eot_id|>",
          "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n"
          "\n"
          "Be brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n"
          "\n"
          "What is 2+2?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n"
          "\n"
          "4<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n"
          "\n"},
         {"<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n"
          "\n"
          "<|eot_id|><|start_header_id|>system<|end_header_id|>\n"
          "\n"
          "late<|eot_id|>",
          "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n"
          "\n"
          "<|eot_id|><|start_header_id|>system<|end_header_id|>\n"
          "\n"
          "late<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n"
          "\n"},
     }},
    {"Llama 3.1",
     "{{- bos_token }}\n"
     "{%- if strftime_now is defined %}\n"
     "    {%- set date_string = strftime_now(\"%d %b %Y\") %}\n"
     "{%- else %}\n"
     "    {%- set date_string = \"26 Jul 2024\" %}\n"
     "{%- endif %}\n"
     "{%- if messages[0]['role'] == 'system' %}\n"
     "    {%- set system_message = messages[0]['content']|trim %}\n"
     "    {%- set messages = messages[1:] %}\n"
     "{%- else %}\n"
     "    {%- set system_message = \"\" %}\n"
     "{%- endif %}\n"
     "{{- \"<|start_header_id|>system<|end_header_id|>\\n\\n\" }}\n"
     "{{- \"Cutting Knowledge Date: December 2023\\n\" }}\n"
     "{{- \"Today Date: \" + date_string + \"\\n\\n\" }}\n"
     "{{- system_message }}\n"
     "{{- \"<|eot_id|>\" }}\n"
     "{%- for message in messages %}\n"
     "    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + "
     "'<|eot_id|>' }}\n"
     "{%- endfor %}\n"
     "{%- if add_generation_prompt %}\n"
     "    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}\n"
     "{%- endif %}\n",
     {
         {"<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n"
          "\n"
          "Cutting Knowledge Date: December 2023\n"
          "Today Date: 26 Jul 2024\n"
          "\n"
          "<|eot_id|><|start_header_id|>user<|end_header_id|>\n"
          "\n"
          "Hi <|im_end|><|eot_id|>",
          "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n"
          "\n"
          "Cutting Knowledge Date: December 2023\n"
          "Today Date: 26 Jul 2024\n"
          "\n"
          "<|eot_id|><|start_header_id|>user<|end_header_id|>\n"
          "\n"
          "Hi <|im_end|><|eot_id|><|start_header_id|>assistant<|end_header_id|>\n"
          "\n"},
         {"<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n"
          "\n"
          "Cutting Knowledge Date: December 2023\n"
          "Today Date: 26 Jul 2024\n"
          "\n"
          "Be brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n"
          "\n"
          "What is 2+2?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n"
          "\n"
          "4<|eot_id|>",
          "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n"
          "\n"
          "Cutting Knowledge Date: December 2023\n"
          "Today Date: 26 Jul 2024\n"
          "\n"
          "Be brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n"
          "\n"
          "What is 2+2?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n"
          "\n"
          "4<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n"
          "\n"},
         {"<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n"
          "\n"
          "Cutting Knowledge Date: December 2023\n"
          "Today Date: 26 Jul 2024\n"
          "\n"
          "<|eot_id|><|start_header_id|>user<|end_header_id|>\n"
          "\n"
          "<|eot_id|><|start_header_id|>system<|end_header_id|>\n"
          "\n"
          "late<|eot_id|>",
          "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n"
          "\n"
          "Cutting Knowledge Date: December 2023\n"
          "Today Date: 26 Jul 2024\n"
          "\n"
          "<|eot_id|><|start_header_id|>user<|end_header_id|>\n"
          "\n"
          "<|eot_id|><|start_header_id|>system<|end_header_id|>\n"
          "\n"
          "late<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n"
          "\n"},
     }},
};

#endif
